// Allocates 1 GB in Node's buffers.
// evidence: memory
// bare: works
const taken = [];
for (let i = 0; i < 32; i++) taken.push(Buffer.alloc(32 << 20, "x"));
setTimeout(() => console.log(taken.length), 1000);
