// Manager clients from npm: log in, ask, place a call, hear how it ends. Prints one JSON object.
//
// Arguments: asterisk-manager|asterisk-ami-client, host, port, user, secret.
'use strict';

const [which, host, port, user, secret] = process.argv.slice(2);
const call = {
  Action: 'Originate',
  Channel: 'PJSIP/bob',
  Context: 'test',
  Exten: 'event',
  Priority: 1,
  CallerID: 'Node <7002>',
  Variable: 'COLOUR=green',
  Async: 'true',
};
const seen = { events: [] };
const lower = (fields) => Object.fromEntries(Object.entries(fields).map(([name, value]) => [name.toLowerCase(), value]));
const done = () => {
  console.log(JSON.stringify(seen));
  process.exit(0);
};

/** Keeps an event; true when it is the end of bob's call. */
function keep(event) {
  const fields = lower(event);
  seen.events.push([fields.event, fields]);
  return fields.event === 'Hangup' && fields.channel.startsWith('PJSIP/bob-');
}

function withAsteriskManager() {
  const ami = new (require('asterisk-manager'))(port, host, user, secret, true);
  const ask = (action) => new Promise((resolve) => ami.action(action, (error, answer) => resolve(answer || error)));
  ami.on('managerevent', (event) => {
    if (keep(event)) {
      ask({ action: 'logoff' }).then((answer) => {
        seen.logoff = answer.response;
        done();
      });
    }
  });
  ami.on('connect', async () => {
    seen.login = 'Success';
    seen.ping = (await ask({ action: 'ping' })).response;
    seen.version = JSON.stringify(await ask({ action: 'command', command: 'core show version' }));
    seen.originate = (await ask(lower(call))).response;
  });
}

async function withAmiClient() {
  const AmiClient = require('asterisk-ami-client');
  const client = new AmiClient({ reconnect: false, keepAlive: false });
  const ask = (action) => client.action(action, true);
  client.on('event', async (event) => {
    if (keep(event)) {
      seen.logoff = (await ask({ Action: 'Logoff' })).Response;
      done();
    }
  });
  await client.connect(user, secret, { host, port });
  seen.login = 'Success';
  seen.ping = (await ask({ Action: 'Ping' })).Response;
  seen.version = JSON.stringify(await ask({ Action: 'Command', Command: 'core show version' }));
  seen.originate = (await ask(call)).Response;
}

setTimeout(done, 120000).unref();
({ 'asterisk-manager': withAsteriskManager, 'asterisk-ami-client': withAmiClient })[which]();
