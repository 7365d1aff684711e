// Never gives the event loop back.
// evidence: time
// bare: works
for (;;);
