// Prints 100 MB from Node.
// evidence: output
// bare: works
import { writeSync } from "node:fs";
const line = "x".repeat(1 << 20);
for (let i = 0; i < 100; i++) writeSync(1, line);
