// A FastAGI server by ding-dong: asks, plays, waits for a digit, sets a variable. Arguments: host, port.
'use strict';

const AgiServer = require('ding-dong');

const [host, port] = process.argv.slice(2);

async function steer(context) {
  const heard = await context.onEvent('variables');
  const answer = await context.answer();
  const exten = await context.getVariable('EXTEN');
  const played = await context.streamFile('low', '');
  await context.databasePut('agi', 'waits', 'yes');
  const digit = await context.waitForDigit(60000);
  const text = await context.getFullVariable('"${LEN(a b)}-${CALLERID(num)}"');
  const told = [
    heard.agi_network_script,
    answer.result,
    exten.value,
    played.result,
    String.fromCharCode(Number(digit.result)),
    text.value,
  ];
  await context.setVariable('heard', told.join(' '));
  await context.end();
}

new AgiServer((context) => steer(context).catch((error) => console.error(error)), {}).start(port, host).on('listening', () => console.log('ready'));
