'use strict';
// A reporter of Mocha.

const { Cases } = require('./redstart_cases.cjs');
const { broken } = require('./redstart_mocha_load.cjs');

module.exports = function report(runner) {
  const found = new Cases();
  const titles = (test) => test.titlePath();
  const add = (test, outcome, errors) =>
    found.add(fileOf(test), titles(test), outcome, errors, (test.duration ?? 0) / 1000);
  let passed = 0;
  let failed = 0;
  runner.on('pass', (test) => {
    passed += 1;
    add(test, 'passed', []);
  });
  runner.on('pending', (test) => add(test, 'skipped', []));
  runner.on('fail', (test, error) => {
    failed += 1;
    process.stdout.write(`failed: ${titles(test).join(' > ')}\n${error?.stack ?? error}\n`);
    if (test.type !== 'hook') add(test, 'failed', [error]);
    else if (test.ctx?.currentTest) add(test.ctx.currentTest, 'error', [error]);
    else test.parent.eachTest((one) => add(one, 'error', [error]));
  });
  runner.on('end', () => {
    for (const { file, error } of broken) {
      process.stdout.write(`not loaded: ${file}\n${error?.stack ?? error}\n`);
      found.add(file, [], 'error', [error]);
    }
    runner.failures += broken.length;
    failed += broken.length;
    process.stdout.write(`${passed} passed, ${failed} failed\n`);
    found.write(process.env.REDSTART_CASES);
  });
};

function fileOf(test) {
  for (let one = test; one; one = one.parent) if (one.file) return one.file;
  return '';
}
