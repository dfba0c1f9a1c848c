/** A pod that asks for what this node does not have: it is refused by name rather than run differently. */
export class UnsupportedPodError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "UnsupportedPodError";
  }
}
