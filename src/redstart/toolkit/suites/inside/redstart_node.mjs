// A reporter of node's own test runner.

import cases from './redstart_cases.cjs';

const OUTSIDE = new Set(['subtestsFailed', 'cancelledByParent']);

export default async function* report(source) {
  const found = new cases.Cases();
  const open = new Map(); // by file: the titles from the outermost test to this one
  const printed = new Map(); // by file: what it said on its way out
  for await (const { type, data } of source) {
    const file = data?.file ?? '';
    if (type === 'test:stderr') {
      printed.set(file, ((printed.get(file) ?? '') + data.message).slice(-20000));
    } else if (type === 'test:start') {
      const titles = open.get(file) ?? [];
      titles.length = data.nesting;
      titles[data.nesting] = data.name;
      open.set(file, titles);
    } else if (type === 'test:pass' || type === 'test:fail') {
      settle(found, open, printed, type === 'test:pass', data);
    }
  }
  yield found.text();
}

function settle(found, open, printed, passed, data) {
  const { file = '', nesting, name, details = {} } = data;
  const titles = [...(open.get(file) ?? []).slice(0, nesting), name];
  const error = details.error?.cause instanceof Object ? details.error.cause : details.error;
  const seconds = (details.duration_ms ?? 0) / 1000;
  if (nesting === 0 && isFile(name, file)) {
    // A file that ended well without a test says nothing; one that did not end well has lost its tests.
    if (!passed) found.add(file, [], 'error', [ended(error, printed.get(file))], seconds);
  } else if (details.type === 'suite') {
    if (!passed && !OUTSIDE.has(details.error?.failureType)) blame(found, file, titles, error);
  } else if (data.skip !== undefined || data.todo !== undefined) {
    found.add(file, titles, 'skipped', [], seconds);
  } else {
    found.add(file, titles, passed ? 'passed' : 'failed', passed ? [] : [error], seconds);
  }
}

const isFile = (name, file) => name === file || (name.includes('/') && file.endsWith(`/${name}`)) || name === file.split('/').pop();

/** What a suite's own hook spoilt: every test of it, or the file where it has not come to one. */
function blame(found, file, titles, error) {
  const whole = new cases.Cases();
  whole.add(file, titles, 'error', [error]);
  const [told] = whole.list;
  const inside = found.list.filter(
    (one) => one.file === told.file && told.titles.every((title, at) => one.titles[at] === title),
  );
  for (const one of inside) Object.assign(one, { ...told, titles: one.titles });
  if (!inside.length) found.list.push({ ...told, titles: [] });
}

/** Of a file that could not be run: what it printed holds the reason. */
function ended(error, said = '') {
  const lines = said.split('\n');
  const at = lines.findIndex((line) => /^(?:\w*Error|AssertionError)\b.*: /.test(line));
  if (at < 0) return error ?? new Error(said || 'the file ended before its tests');
  const [name, ...rest] = lines[at].split(': ');
  const place = lines.find((line) => /^(?:file:\/\/)?\/.*:\d+$/.test(line));
  const stack = [lines[at], ...(place ? [`    at ${place}:1`] : []), ...lines.slice(at + 1)].join('\n');
  return { name, message: rest.join(': '), stack };
}
