// A reporter of Vitest, from its first version on.

import cases from './redstart_cases.cjs';

const OUTCOMES = { pass: 'passed', fail: 'failed' };

export default class {
  onInit() {
    this.left = false;
  }

  onFinished(files = []) {
    this.leave(files);
  }

  onTestRunEnd(modules = []) {
    this.leave(modules.map((module) => module.task));
  }

  leave(files) {
    if (this.left) return;
    this.left = true;
    const found = new cases.Cases();
    for (const file of files) {
      const errors = file.result?.errors ?? [];
      if (errors.length || (file.result?.state === 'fail' && !file.tasks.length)) {
        found.add(file.filepath, [], 'error', errors);
      }
      for (const task of file.tasks) visit(found, file.filepath, [], task, []);
    }
    found.write(process.env.REDSTART_CASES);
  }
}

/** `above` is what went wrong around a test that was therefore not run. */
function visit(found, file, titles, task, above) {
  const here = [...titles, task.name];
  const errors = task.result?.errors ?? [];
  if (task.tasks) {
    for (const one of task.tasks) visit(found, file, here, one, [...above, ...errors]);
    return;
  }
  const seconds = (task.result?.duration ?? 0) / 1000;
  if (above.length && task.mode !== 'todo' && task.result?.state !== 'fail') found.add(file, here, 'error', above, seconds);
  else found.add(file, here, OUTCOMES[task.result?.state] ?? 'skipped', errors, seconds);
}
