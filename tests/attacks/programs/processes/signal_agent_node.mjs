// Sends the agent a signal with Node.
// evidence: harm
// bare: works
process.kill(Number(process.env.ATTACK_AGENT), "SIGKILL");
