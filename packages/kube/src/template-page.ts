import type { DiskVerdict, ListedTemplate, TemplatePage } from "@holdfast/workspace";
import type { DiskKind } from "./objects/disk.ts";
import { at, elements, member, ObjectUnreadable, optionalList, requireObject, textOf } from "./objects/json.ts";
import { readTemplateObject } from "./objects/template.ts";

/** A label's value is at most this long, and every workspace carries its template's name as one. */
export const templateNameMaxLength = 63;

/** The templates of a page, each as small as a list needs it. */
export function readTemplatePage(body: unknown, disk: DiskKind): TemplatePage {
  const items = optionalList(member(requireObject(body, "SandboxTemplateList"), "items"), "items");
  const templates = items.flatMap((item): ListedTemplate[] => {
    const name = textOf(at(item, "metadata", "name"));
    if (name === undefined) return [];
    const [container] = elements(at(item, "spec", "podTemplate", "spec", "containers"));
    return [{ name, image: textOf(at(container, "image")), disk: verdictOf(item, name, disk) }];
  });
  return { templates, continueToken: textOf(at(body, "metadata", "continue")) };
}

function verdictOf(item: unknown, name: string, disk: DiskKind): DiskVerdict {
  if (name.length > templateNameMaxLength) {
    const why = `its name is longer than ${templateNameMaxLength} characters, and it becomes a label`;
    return { usable: false, why, claims: [] };
  }
  try {
    return readTemplateObject(item, disk).disk;
  } catch (error) {
    if (!(error instanceof ObjectUnreadable)) throw error;
    return { usable: false, why: `it cannot be read: ${error.message}`, claims: [] };
  }
}
