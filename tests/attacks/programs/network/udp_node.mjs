// Sends a datagram with Node.
// evidence: contact
// bare: works
import { createSocket } from "node:dgram";
const socket = createSocket("udp4");
socket.send("x", Number(process.env.ATTACK_UDP), "127.0.0.1", () => socket.close());
