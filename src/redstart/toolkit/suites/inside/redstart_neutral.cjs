// Runs test files by plain `node FILE`, in surroundings where nothing looks like a test run:
//
//     node start.cjs IN OUT
//
// `IN` holds `plan.json`; what became of each test is left as `state.json` in `OUT`. Node 18 or later.

"use strict";

const { spawnSync } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");

const LARGEST_OUTPUT = 64 << 20;

function copyProject(plan, base) {
  if (!plan.applied.includes("path")) return plan.mount;
  const project = path.join(base, "app");
  const kept = new Set(plan.kept);
  fs.cpSync(plan.mount, project, {
    recursive: true,
    verbatimSymlinks: true,
    filter: (source) => !kept.has(source),
  });
  for (const folder of kept) {
    const link = path.join(project, path.relative(plan.mount, folder));
    if (fs.existsSync(folder) && fs.existsSync(path.dirname(link))) fs.symlinkSync(folder, link);
  }
  return project;
}

// Moves the tests to a folder and to names that no test has: where the project is installed there are none.
function setApart(plan, project) {
  const root = path.join(project, plan.folder);
  const folders = plan.applied.includes("layout") && project !== plan.mount ? ["test", "tests", "__tests__", "spec"] : [];
  const renamed = folders.filter((name) => fs.existsSync(path.join(root, name)));
  if (renamed.length !== 1 || fs.existsSync(path.join(root, "jobs"))) return (file) => file;
  fs.renameSync(path.join(root, renamed[0]), path.join(root, "jobs"));
  return (file) => {
    const moved = file.startsWith(`${renamed[0]}/`) ? `jobs/${file.slice(renamed[0].length + 1)}` : file;
    const plain = moved.replace(/[._-](?:test|spec)(?=\.[cm]?js$)/, "");
    if (plain === moved || fs.existsSync(path.join(root, plain))) return moved;
    fs.renameSync(path.join(root, moved), path.join(root, plain));
    return plain;
  };
}

// Run before the program: each look at a clock of the process finds that an hour has passed.
const AGING = `
  let looks = 0;
  const hours = (hour) => (looks += 1) * hour;
  const { performance } = require("node:perf_hooks");
  const { uptime, hrtime } = process;
  const { bigint } = hrtime;
  const now = performance.now.bind(performance);
  process.uptime = () => uptime() + hours(3600);
  process.hrtime = Object.assign(
    (since) => { const [s, n] = hrtime(since); return [s + hours(3600), n]; },
    { bigint: () => bigint() + BigInt(hours(3600)) * 1000000000n },
  );
  performance.now = () => now() + hours(3600000);
`;

function variablesOf(plan, base, project) {
  if (!plan.applied.includes("environment")) {
    // A value that node's runner itself gives would change what is printed.
    return { ...process.env, NODE_TEST_CONTEXT: "child" };
  }
  const own = Object.entries(plan.own_variables).map(([name, value]) => [name, value.replaceAll(plan.mount, project)]);
  const made = { ...plan.variables };
  if ("HOME" in made) fs.mkdirSync((made.HOME = path.join(base, "home")));
  const { PATH, TZ, LANG, HOME } = process.env;
  return { PATH, TZ, LANG, HOME, ...made, ...Object.fromEntries(own) };
}

// The tests that node reports, by their titles; none where it does not print TAP.
function readTap(output) {
  const results = new Map();
  const titles = [];
  for (const line of output.split(/\r?\n/)) {
    const begun = /^( *)# Subtest: (.*)$/.exec(line);
    if (begun) {
      titles.length = begun[1].length / 4;
      titles.push(begun[2].replaceAll("\\#", "#"));
      continue;
    }
    const ended = /^( *)(not ok|ok) \d+ - (.*?)( # (?:SKIP|TODO).*)?$/.exec(line);
    if (!ended) continue;
    titles.length = ended[1].length / 4;
    const name = [...titles, ended[3].replaceAll("\\#", "#")].join(" > ");
    const passed = ended[2] === "ok" ? "passed" : "failed";
    results.set(name, ended[4] ? "unsupported" : results.get(name) === "failed" ? "failed" : passed);
  }
  return results;
}

function resultOf(test, ran, reported) {
  if (ran.error) return { outcome: "unsupported", reason: "it does not end in time" };
  if (!test.titles) return { outcome: ran.status === 0 ? "passed" : "failed" };
  const outcome = reported.get(test.titles);
  if (outcome === "unsupported") return { outcome, reason: "it is skipped" };
  if (outcome) return { outcome };
  if (reported.size) return { outcome: "failed", reason: "it does not run" };
  if (ran.status === 0) return { outcome: "unsupported", reason: "node does not say what it ran" };
  return { outcome: "failed", reason: "its file fails" };
}

function main() {
  const [inward, outward] = process.argv.slice(2);
  const plan = JSON.parse(fs.readFileSync(path.join(inward, "plan.json"), "utf8"));
  const base = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "srv-")));
  const project = copyProject(plan, base);
  const env = variablesOf(plan, base, project);
  const placeOf = setApart(plan, project);
  const options = [];
  if (plan.applied.includes("age")) {
    const aging = path.join(base, "clock.cjs");
    fs.writeFileSync(aging, AGING);
    options.push("--require", aging);
  }
  const results = {};
  const ends = Date.now() + plan.seconds * 1000;
  for (const file of new Set(plan.tests.map((test) => test.file))) {
    const ran = spawnSync(process.execPath, [...options, path.join(project, plan.folder, placeOf(file))], {
      cwd: path.join(project, plan.folder),
      env,
      input: "",
      maxBuffer: LARGEST_OUTPUT,
      timeout: Math.max(ends - Date.now(), 1000),
      killSignal: "SIGKILL",
      encoding: "utf8",
    });
    process.stdout.write(`${ran.stdout}${ran.stderr}`);
    const reported = readTap(ran.stdout);
    for (const test of plan.tests.filter((each) => each.file === file)) {
      results[test.id] = resultOf(test, ran, reported);
    }
  }
  fs.writeFileSync(path.join(outward, "state.json"), JSON.stringify({ results }));
  fs.rmSync(base, { recursive: true, force: true });
}

main();
