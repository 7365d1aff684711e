// Leaves a detached child process behind, with Node.
// evidence: survive
// bare: works
import { spawn } from "node:child_process";
spawn("sleep", ["60"], { detached: true, stdio: "ignore" }).unref();
