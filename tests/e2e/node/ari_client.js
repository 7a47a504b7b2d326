// The REST interface with ari-client from npm, unmodified: calls two phones into a program, plays to one, lets both talk,
// records them, hangs up. Prints one JSON object.
//
// Arguments: URL, user, password. Says `talking` once both are in the bridge, and goes on when a line comes.
'use strict';

// The library's parser of descriptions says on the console that their form is an old one.
const print = console.log;
console.log = () => {};
const client = require('ari-client');

const [url, user, password] = process.argv.slice(2);
const seen = { events: [] };

const heard = (ari, name) => new Promise((resolve) => ari.once(name, (event) => resolve(event)));
const line = () => new Promise((resolve) => process.stdin.once('data', resolve));

async function run() {
  const ari = await client.connect(url, user, password);
  seen.resources = Object.keys(ari._swagger.apis).sort();
  ari.on('*', (event) => seen.events.push(event));
  await ari.start('hello');
  seen.apps = (await ari.applications.list()).map((app) => app.name);
  seen.endpoints = (await ari.endpoints.list()).map((one) => `${one.technology}/${one.resource} ${one.state}`).sort();

  const call = async (name) => {
    const started = heard(ari, 'StasisStart');
    const made = ari.Channel();
    await made.originate({
      endpoint: `PJSIP/${name}`, app: 'hello', appArgs: name, callerId: `${name} <100>`, variables: { COLOUR: 'green' },
    });
    const event = await started;
    return { channel: made, event };
  };
  const alice = await call('alice');
  seen.args = alice.event.args;
  seen.same = alice.event.channel.id === alice.channel.id;
  await alice.channel.answer();
  seen.variable = (await alice.channel.getChannelVar({ variable: 'COLOUR' })).value;
  const playback = ari.Playback();
  const finished = new Promise((resolve) => playback.once('PlaybackFinished', (event) => resolve(event.playback.state)));
  await alice.channel.play({ media: 'sound:welcome' }, playback);
  seen.playback = await finished;

  const bob = await call('bob');
  const bridge = ari.Bridge();
  await bridge.create({ type: 'mixing', name: 'table' });
  await bridge.addChannel({ channel: [alice.channel.id, bob.channel.id] });
  seen.bridged = (await bridge.get()).channels.length;
  print('talking');
  await line();

  const recorded = heard(ari, 'RecordingFinished');
  await bridge.record({ name: 'talk', format: 'wav', maxDurationSeconds: 2 });
  seen.recording = (await recorded).recording;
  seen.stored = (await ari.recordings.listStored()).map((one) => one.name);
  seen.file = (await ari.recordings.getStoredFile({ recordingName: 'talk' })).length;
  await bridge.destroy();

  seen.missing = await ari.channels.get({ channelId: 'nobody' }).catch((error) => error.message);
  const ended = heard(ari, 'StasisEnd');
  await alice.channel.hangup();
  seen.ended = (await ended).channel.id === alice.channel.id;
  await bob.channel.hangup();
  await new Promise((resolve) => setTimeout(resolve, 500));
  ari.stop();
}

run().then(
  () => {
    print(JSON.stringify(seen));
    process.exit(0);
  },
  (error) => {
    console.error(error, JSON.stringify(seen));
    process.exit(1);
  },
);
