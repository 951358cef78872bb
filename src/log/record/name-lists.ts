import { isObject, parseJson } from '../../protocol/json.ts'
import type { Recorder } from './recorder.ts'

/** Lists of names, by name. */
export type NameLists = Readonly<Record<string, readonly string[]>>

/** Lists of names that a log keeps as the position of a stream, for all programs that open it. */
export class StoredNameLists {
  readonly #recorder: Recorder
  readonly #stream: string

  constructor(recorder: Recorder, stream: string) {
    this.#recorder = recorder
    this.#stream = stream
  }

  async read(): Promise<NameLists> {
    const [position] = await this.#recorder.positions([this.#stream])
    return listsIn(position)
  }

  /**
   * Sets the list of a name. An empty one is forgotten.
   *
   * @param check Called with the lists as they would be. They stay as they are if it throws.
   */
  async set(
    name: string,
    list: readonly string[],
    signal: AbortSignal,
    check: (lists: NameLists) => void = () => {},
  ): Promise<void> {
    const withIt = (lists: NameLists): NameLists => {
      const others = Object.entries(lists).filter(([each]) => each !== name)
      return Object.fromEntries(list.length === 0 ? others : [...others, [name, list]])
    }
    const before = await this.read()
    check(withIt(before))
    // It rarely changes, and its claim is for a moment.
    if (isSame(listOf(before, name), list)) return
    const stream = await this.#recorder.openInTurn(this.#stream, signal)
    try {
      const lists = withIt(listsIn(stream.position))
      check(lists)
      stream.move({ text: () => JSON.stringify(lists) })
      await this.#recorder.flushed(stream)
    } finally {
      await stream.close()
    }
  }
}

/** The list of a name: an empty one if it has none. */
export function listOf(lists: NameLists, name: string): readonly string[] {
  return Object.hasOwn(lists, name) ? (lists[name] ?? []) : []
}

/** The lists in the position of their stream. */
export function listsIn(position: string | null | undefined): NameLists {
  const parsed = parseJson(position ?? '')
  if (!isObject(parsed)) return {}
  return Object.fromEntries(
    Object.entries(parsed).map(([name, list]) => [
      name,
      Array.isArray(list) ? list.filter((each) => typeof each === 'string') : [],
    ]),
  )
}

function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((each, n) => each === other[n])
}
