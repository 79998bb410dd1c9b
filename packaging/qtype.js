#!/usr/bin/env node
// Starts the program of the package of this platform, and ends as it does.
'use strict';
const { spawn } = require('child_process');
const { constants } = require('os');

const name = `@qtype-dev/qtype-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/bin/qtype${process.platform === 'win32' ? '.exe' : ''}`);
} catch {
  console.error(`qtype: the package ${name} is missing. npm leaves it out with --omit=optional, and if there is no program for this platform.`);
  process.exit(1);
}

const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' });
process.on('SIGINT', () => {}); // a terminal sends it to the program, too
for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
child.on('error', (err) => {
  console.error(`qtype: ${err.message}`);
  process.exit(1);
});
child.on('exit', (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : code));
