// Writes one file of 200 MB.
// evidence: disk
// bare: works
import { openSync, writeSync } from "node:fs";
const file = openSync("large", "w");
for (let i = 0; i < 200; i++) writeSync(file, Buffer.alloc(1 << 20, "x"));
setTimeout(() => {}, 1000);
