import { setImmediate as nextTurn } from 'node:timers/promises'

/**
 * How long a group waits at most while each turn of the event loop brings more, in ms. A server accepts about one connection in
 * a turn, so a burst would otherwise be synced to the disk one by one.
 */
const MAX_GATHERING = 5

/** Maximum size of a group. A single item may be longer. */
const MAX_ITEMS = 256
const MAX_LENGTH = 4 * 1024 * 1024

interface WaitingItem<Item, Result> extends Pick<PromiseWithResolvers<Result>, 'resolve' | 'reject'> {
  readonly item: Item
}

/** Commits what arrives at the same time in one transaction, and what arrives during it in the next one. */
export class GroupCommit<Item, Result> {
  readonly #commit: (items: readonly Item[]) => Promise<readonly Result[]>
  readonly #lengthOf: (item: Item) => number
  #waiting: WaitingItem<Item, Result>[] = []
  #isCommitting = false

  /** @param commit Returns the result of each item. It rejects for all of them. */
  constructor(
    commit: (items: readonly Item[]) => Promise<readonly Result[]>,
    lengthOf: (item: Item) => number,
  ) {
    this.#commit = commit
    this.#lengthOf = lengthOf
  }

  /** Resolves with the result once it is committed. */
  add(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject })
      if (!this.#isCommitting) void this.#run()
    })
  }

  async #run(): Promise<void> {
    this.#isCommitting = true
    while (this.#waiting.length > 0) {
      await this.#gathered()
      const group = this.#next()
      try {
        const results = await this.#commit(group.map(({ item }) => item))
        for (const [index, { resolve, reject }] of group.entries()) {
          const result = results[index]
          if (result === undefined) reject(new RangeError('a commit has a result for each item'))
          else resolve(result)
        }
      } catch (error) {
        for (const { reject } of group) reject(error)
      }
    }
    this.#isCommitting = false
  }

  /** Resolves in the first turn of the event loop that brings nothing more. */
  async #gathered(): Promise<void> {
    const latest = performance.now() + MAX_GATHERING
    for (let known = 0; this.#waiting.length > known && performance.now() < latest;) {
      known = this.#waiting.length
      if (known >= MAX_ITEMS) return
      await nextTurn()
    }
  }

  #next(): readonly WaitingItem<Item, Result>[] {
    let length = 0
    const end = this.#waiting.findIndex(({ item }, index) => {
      length += this.#lengthOf(item)
      return index === MAX_ITEMS || (index > 0 && length > MAX_LENGTH)
    })
    return this.#waiting.splice(0, end === -1 ? this.#waiting.length : end)
  }
}
