import type { AnyDesc, DescFile } from "@bufbuild/protobuf";
import { getComments } from "@bufbuild/protoplugin";

/** The comment of an element as Markdown: its lines joined, paragraphs kept. */
export function commentOf(element: Exclude<AnyDesc, DescFile>): string {
  const { leading, trailing } = getComments(element);
  return [leading ?? "", trailing ?? ""]
    .join("\n")
    .split(/\n\s*\n/)
    .map((paragraph) => paragraph.replace(/\s*\n\s*/g, " ").trim())
    .filter((paragraph) => paragraph !== "")
    .join("\n\n");
}

/** The same in one line, for a cell of a table. */
export function cellOf(element: Exclude<AnyDesc, DescFile>): string {
  return commentOf(element).replaceAll("\n\n", " ").replaceAll("|", "\\|");
}
