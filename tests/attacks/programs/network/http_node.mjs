// Sends a request with Node.
// evidence: contact
// bare: works
await fetch(`http://127.0.0.1:${process.env.ATTACK_TCP4}/`, { signal: AbortSignal.timeout(2000) });
