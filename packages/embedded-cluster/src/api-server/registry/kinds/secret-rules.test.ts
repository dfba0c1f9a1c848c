import { expect, it, onTestFinished } from "vitest";
import { openTestServer, secretObject, secretsPath, withDefaultNamespace } from "../../testing/test-server.ts";

async function opened() {
  const test = await withDefaultNamespace(await openTestServer());
  onTestFinished(() => test.close());
  return test;
}

it.each([{ stringData: { a: { b: 1 } } }, { stringData: { a: 1 } }, { stringData: "text" }, { immutable: "yes" }])(
  "a secret of which $stringData$immutable cannot be read is refused: no text is invented for it",
  async (members) => {
    const test = await opened();
    const refused = await test.call("POST", secretsPath, { ...secretObject("s"), ...members });
    expect(refused).toMatchObject({
      code: 400,
      body: { message: expect.stringContaining("json: cannot unmarshal") },
    });
    expect((await test.call("GET", `${secretsPath}/s`)).code).toBe(404);
  },
);

it("a null in a secret's texts is an empty one", async () => {
  const test = await opened();
  const { body } = await test.call("POST", secretsPath, { ...secretObject("s"), data: null, stringData: { a: null } });
  expect(body.data).toEqual({ a: "" });
});
