import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openTestServer, podObject, podsPath, type TestServer, withDefaultNamespace } from "../testing/test-server.ts";

const printed: Record<string, string> = { first: "one\ntwo\nthree\n", second: "no end of line", empty: "" };
let test: TestServer;
beforeAll(async () => {
  const readLog = async (_uid: string, container: string): Promise<Buffer | undefined> => {
    const text = printed[container];
    return text === undefined ? undefined : Buffer.from(text);
  };
  test = await withDefaultNamespace(await openTestServer({ readLog }));
  const containers = ["first", "second", "empty", "late"].map((name) => ({ name, image: "x" }));
  await test.call("POST", podsPath, podObject("p", { containers }));
  await test.call("POST", podsPath, podObject("one", { containers: [{ name: "first", image: "x" }] }));
});
afterAll(() => test.close());

const log = (query = "", pod = "p") => test.call("GET", `${podsPath}/${pod}/log${query}`);

describe("the log of a container", () => {
  it.each([
    ["?container=first", "one\ntwo\nthree\n"],
    ["?container=first&tailLines=2", "two\nthree\n"],
    ["?container=first&tailLines=9", "one\ntwo\nthree\n"],
    ["?container=first&tailLines=0", ""],
    ["?container=first&limitBytes=5", "one\nt"],
    ["?container=second&tailLines=1", "no end of line"],
    ["?container=empty", ""],
  ])("%s", async (query, expected) => {
    expect(await log(query)).toEqual({ code: 200, body: expected });
  });

  it("needs no name where there is one container", async () => {
    expect((await log("", "one")).body).toBe("one\ntwo\nthree\n");
  });

  it.each([
    ["", "a container name must be specified for pod p, choose one of: [first second empty late]"],
    ["?container=other", "container other is not valid for pod p"],
    ["?container=../first", "container ../first is not valid for pod p"],
    ["?container=late", 'container "late" in pod "p" is waiting to start: ContainerCreating'],
    ["?container=first&follow=true", "follow of a log is not served by the embedded cluster"],
    ["?container=first&sinceSeconds=5", "sinceSeconds of a log is not served by the embedded cluster"],
  ])("is refused for %s", async (query, message) => {
    expect(await log(query)).toMatchObject({ code: 400, body: { message } });
  });

  it("of a pod that is not there is 404", async () => {
    expect((await log("", "none")).code).toBe(404);
  });

  it("is kept in a file, so that a container's name is no path", async () => {
    const answer = await test.call("POST", podsPath, podObject("q", { containers: [{ name: "../x", image: "x" }] }));
    expect(answer).toMatchObject({ code: 422, body: { details: { causes: [{ field: "spec.containers[0].name" }] } } });
  });
});
