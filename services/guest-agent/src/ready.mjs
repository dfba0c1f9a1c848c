// Readiness of the agent, asked from within its pod: exit 0 when it serves, 1 when it does not.
import { connect } from "node:net";

const path = process.env.HOLDFAST_AGENT_SOCKET ?? "/run/holdfast/agent.sock";
const answerWithinMs = 2_000;

let answer = "";
const socket = connect(path);
setTimeout(() => fail(`no answer within ${answerWithinMs} ms`), answerWithinMs).unref();
socket.setEncoding("utf8");
socket.on("data", (text) => {
  answer += text;
});
socket.on("error", (error) => fail(error.message));
socket.on("end", () => (answer === "serving\n" ? process.exit(0) : fail(`it answers ${JSON.stringify(answer)}`)));

function fail(why) {
  console.error(`agent at ${path}: ${why}`);
  process.exit(1);
}
