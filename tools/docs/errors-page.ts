import type { DescFile } from "@bufbuild/protobuf";
import { reasonGuide, reasons, retryAfterMs } from "@holdfast/contract";
import { commentOf } from "./comment-text.ts";

/** Every reason of the catalogue: status, meaning, cure, and the calls that name it. */
export function errorsPage(files: readonly DescFile[]): string {
  const rows = entriesOf(reasons).map(([reason, status]) => {
    const { means, cure } = reasonGuide[reason];
    const after = retryAfterMs[reason];
    const retry = after === undefined ? "" : ` Carries RetryInfo: after ${after / 1000} s.`;
    return `### ${reason}\n\n\`${status}\`. ${means}\n\n*What to do:* ${cure}${retry}${namedBy(files, reason)}`;
  });
  return `# Errors

Generated from the catalogue (\`packages/contract\`) by \`npm run generate\`; do not edit.

Every error carries \`google.rpc.ErrorInfo\` with domain \`holdfast\`, a reason of this page and metadata: \`operation\`, \`workspace_id\` and
\`sandbox\`, then the numbers and names that the reason is about. A wrong request also carries \`google.rpc.BadRequest\` with all of its
violations. Where a retry helps there is \`google.rpc.RetryInfo\`. With status \`UNKNOWN\` the outcome is not known: no client may retry
by itself.

${rows.join("\n\n")}
`;
}

function namedBy(files: readonly DescFile[], reason: string): string {
  const word = new RegExp(`\\b${reason}\\b`);
  const names = files.flatMap((file) =>
    file.services.flatMap((service) => {
      if (word.test(commentOf(service))) return [`every call of ${service.name}`];
      return service.methods
        .filter((method) => word.test(commentOf(method)))
        .map((method) => `${service.name}.${method.name}`);
    }),
  );
  return names.length === 0 ? "" : `\n\n*Named by:* ${names.join(", ")}.`;
}

function entriesOf<Key extends string, Value>(record: Readonly<Record<Key, Value>>): [Key, Value][] {
  return Object.entries(record) as [Key, Value][];
}
