import { LogInUseError } from '../errors.ts'

/** The groups of which one open log is a member, of each once. */
export class JoinedGroups {
  readonly #log: string
  readonly #owner: string
  readonly #joined = new Set<string>()

  /** @param log The log, and `owner` the open log, in errors. */
  constructor(log: string, owner: string) {
    this.#log = log
    this.#owner = owner
  }

  /** Returns what leaves the group. Throws a LogInUseError where it is a member already. */
  join(group: string): () => void {
    if (this.#joined.has(group)) throw new LogInUseError(this.#log, `group:${group}`, this.#owner)
    this.#joined.add(group)
    let isMember = true
    return () => {
      // It may have joined again since.
      if (isMember) this.#joined.delete(group)
      isMember = false
    }
  }
}
