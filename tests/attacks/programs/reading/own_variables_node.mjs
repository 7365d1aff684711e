// Prints its environment variables with Node.
// evidence: read
// bare: works
console.log(JSON.stringify(process.env));
