// Reads the cloud credentials with Node.
// evidence: read
// bare: works
import { readFileSync } from "node:fs";
console.log(readFileSync(process.env.ATTACK_HOME + "/.aws/credentials", "utf8"));
