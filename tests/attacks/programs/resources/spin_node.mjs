// Blocks Node's event loop forever.
// evidence: time
// bare: works
for (;;);
