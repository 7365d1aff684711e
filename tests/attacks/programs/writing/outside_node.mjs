// Creates such a file with Node.
// evidence: write
// bare: works
import { writeFileSync } from "node:fs";
writeFileSync(process.env.ATTACK_OUTSIDE + "/was-here", "x");
