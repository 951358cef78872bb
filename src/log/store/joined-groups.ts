import { LogInUseError } from '../errors.ts'

/** The groups that one open log has joined, each once. */
export class JoinedGroups {
  readonly #log: string
  readonly #owner: string
  readonly #joined = new Set<string>()

  /** @param log The log, and `owner` the open log, in errors. */
  constructor(log: string, owner: string) {
    this.#log = log
    this.#owner = owner
  }

  /** Joins a group. Returns a function that leaves it. Throws a LogInUseError if the open log is a member already. */
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
