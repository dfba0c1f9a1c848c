/** More than one pod names the Sandbox as its controller: which one is meant cannot be known, so none is touched. */
export class MultiplePodsError extends Error {
  constructor(count: number) {
    super(`multiple Pods (${count}) are controlled by this Sandbox; refusing to choose or create a Pod`);
    this.name = "MultiplePodsError";
  }
}
