export interface StepCommand {
  readonly file: string;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  readonly quiet?: boolean;
  readonly tellsVerdict?: boolean;
}
export function runStep(step: StepCommand, patienceMs?: number): Promise<number>;
