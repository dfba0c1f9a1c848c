/**
 * The members that stand twice in one object of a JSON text, as paths: parsing keeps the last one in silence. The text
 * has been parsed before, so that it is well formed.
 */
export function doubledMembers(json: string): string[] {
  const doubled = new Set<string>();
  const places: Place[] = [];
  for (const [token] of json.matchAll(tokens)) {
    const place = places.at(-1);
    if (token === "{")
      places.push({ path: pathBelow(place), members: new Set(), key: undefined, index: 0, isList: false });
    else if (token === "[")
      places.push({ path: pathBelow(place), members: new Set(), key: undefined, index: 0, isList: true });
    else if (token === "}" || token === "]") places.pop();
    else if (place === undefined) continue;
    else if (token === ",") {
      place.index++;
      place.key = undefined;
    } else if (!place.isList && place.key === undefined && token.startsWith('"')) {
      place.key = String(JSON.parse(token));
      if (place.members.has(place.key)) doubled.add(pathBelow(place));
      place.members.add(place.key);
    }
  }
  return [...doubled];
}

interface Place {
  readonly path: string;
  readonly isList: boolean;
  readonly members: Set<string>;
  /** The member whose value is being read. */
  key: string | undefined;
  index: number;
}

/** Texts and brackets; numbers, words and colons say nothing here. */
const tokens = /"(?:[^"\\]|\\.)*"|[{}[\],]/gu;

function pathBelow(place: Place | undefined): string {
  if (place === undefined) return "";
  if (place.isList) return `${place.path}[${place.index}]`;
  return place.path === "" ? (place.key ?? "") : `${place.path}.${place.key ?? ""}`;
}
