import type { DescFile } from "@bufbuild/protobuf";
import { cellOf } from "./comment-text.ts";
import { shortNameOf } from "./public-files.ts";

/** The list of all calls. */
export function indexPage(files: readonly DescFile[]): string {
  const rows = files.flatMap((file) =>
    file.services.flatMap((service) =>
      service.methods.map((method) => {
        const [first = ""] = cellOf(method).split(/(?<=\.) /);
        const anchor = `${service.name}${method.name}`.toLowerCase();
        return `| [${service.name}.${method.name}](${shortNameOf(file)}.md#${anchor}) | ${method.methodKind.replace("_", " ")} | ${first} |`;
      }),
    ),
  );
  return `# API reference

Generated from \`proto/holdfast/v1\` by \`npm run generate\`; do not edit. Reasons of errors: [errors.md](errors.md).
How to call from TypeScript, grpcurl and curl: [../clients.md](../clients.md).

| call | kind | |
| --- | --- | --- |
${rows.join("\n")}
`;
}
