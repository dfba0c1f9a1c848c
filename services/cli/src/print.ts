import { once } from "node:events";
import { type DescMessage, type MessageShape, toJsonString } from "@bufbuild/protobuf";

/** Writes to standard output, as fast as its reader takes it. */
export async function write(data: string | Uint8Array): Promise<void> {
  if (!process.stdout.write(data)) await once(process.stdout, "drain");
}

/** Writes one line to standard output. */
export async function say(line: string): Promise<void> {
  await write(`${line}\n`);
}

/** Writes a message of the API as JSON: indented alone, on one line among others. */
export async function sayJson<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
  among: "alone" | "others" = "alone",
): Promise<void> {
  await say(toJsonString(schema, message, among === "alone" ? { prettySpaces: 2 } : {}));
}
