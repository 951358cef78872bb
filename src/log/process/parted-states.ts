import { LogPositionError } from '../errors.ts'
import { isDivided, partName } from '../consume/part-name.ts'
import { MAX_PAGE_LENGTH } from '../store/contract.ts'
import type { LogStore, Position } from '../store/contract.ts'
import type {
  ChangesOptions,
  ChangesPage,
  RangeOptions,
  RangePage,
  StoredChange,
  StoredStates,
} from '../store/process-store.ts'
import { compareStored, storedText } from '../../protocol/stored-text.ts'
import { partOfKey, PROCESS_PARTS } from './process-parts.ts'

/** Separator between the positions of parts. */
const SEPARATOR = '~'

/**
 * The states of processes, each as one, whether it is divided or not. A position of a divided process has the positions of all its
 * parts. A position from before the division is refused, as after a rebuild.
 */
export class PartedStates implements StoredStates {
  readonly #store: LogStore
  /** Processes that were divided when they were checked last. */
  readonly #divided = new Set<string>()

  constructor(store: LogStore) {
    this.#store = store
  }

  start(): Promise<Position> {
    return this.#store.processes.start()
  }

  states(name: string, keys: readonly string[]): Promise<readonly (string | null)[]> {
    return this.#read(
      name,
      () => this.#store.processes.states(name, keys),
      () => this.#statesOfParts(name, keys),
      (states) => !states.includes(null),
    )
  }

  end(name: string): Promise<Position> {
    return this.#read(
      name,
      () => this.#store.processes.end(name),
      async () => joined(await Promise.all(partsOf(name).map((part) => this.#store.processes.end(part)))),
      () => false,
    )
  }

  changes(name: string, after: Position, options: ChangesOptions): Promise<ChangesPage> {
    return this.#read(
      name,
      () => this.#store.processes.changes(name, after, options),
      () => this.#changesOfParts(name, after, options),
      ({ changes }) => changes.length > 0,
    )
  }

  range(name: string, options: RangeOptions): Promise<RangePage> {
    return this.#read(
      name,
      () => this.#store.processes.range(name, options),
      () => this.#rangeOfParts(name, options),
      ({ states }) => states.length > 0,
    )
  }

  async wait(name: string, after: Position, signal: AbortSignal): Promise<void> {
    const { processes, sharing } = this.#store
    const start = await processes.start()
    const [isOne, isKnown] = [(await sharing.partitions()).count === 1, await this.#isDivided(name)]
    if (!isKnown && (isOne || after !== start)) return processes.wait(name, after, signal)
    // A process without a state may be divided meanwhile.
    const own = isKnown ? [] : [[name, after] as const]
    const positions = await this.#parsed(after)
    const places = [...own, ...partsOf(name).map((part, at) => [part, positions[at] ?? start] as const)]
    const ending = new AbortController()
    const either = AbortSignal.any([signal, ending.signal])
    try {
      await Promise.race(places.map(([part, position]) => processes.wait(part, position, either)))
    } finally {
      ending.abort()
    }
  }

  /** Reads the parts or the whole. If nothing is found, the process may have been divided meanwhile: it is checked once more. */
  async #read<Result>(
    name: string,
    whole: () => Promise<Result>,
    parts: () => Promise<Result>,
    isSure: (result: Result) => boolean,
  ): Promise<Result> {
    const wasDivided = this.#divided.has(name)
    const first = await (wasDivided ? parts() : whole()).then(
      (result) => ({ result }),
      (error: unknown) => {
        if (error instanceof LogPositionError) return { error }
        throw error
      },
    )
    if ('result' in first && isSure(first.result)) return first.result
    if ((await this.#isDivided(name)) !== wasDivided) return wasDivided ? whole() : parts()
    if ('error' in first) throw first.error
    return first.result
  }

  async #isDivided(name: string): Promise<boolean> {
    const { count } = await this.#store.sharing.partitions()
    const isSo = count > 1 && (await isDivided(this.#store, name))
    if (isSo) this.#divided.add(name)
    else this.#divided.delete(name)
    return isSo
  }

  async #statesOfParts(name: string, keys: readonly string[]): Promise<readonly (string | null)[]> {
    const found = new Map<string, string | null>()
    const byPart = Map.groupBy(keys, partOfKey)
    await Promise.all(
      Array.from(byPart, async ([part, own]) => {
        const states = await this.#store.processes.states(partName(name, part), own)
        for (const [at, key] of own.entries()) found.set(key, states[at] ?? null)
      }),
    )
    return keys.map((key) => found.get(key) ?? null)
  }

  async #changesOfParts(name: string, after: Position, options: ChangesOptions): Promise<ChangesPage> {
    const { limit, until, maxLength = MAX_PAGE_LENGTH } = options
    const at = [...(await this.#parsed(after))]
    const ends = until === undefined ? undefined : await this.#parsed(until)
    const changes: StoredChange[] = []
    let length = 0
    for (const [part, own] of partsOf(name).entries()) {
      if (changes.length >= limit || length >= maxLength)
        return { changes, position: joined(at), isEnd: false }
      const end = ends?.[part]
      const from = at[part] ?? ''
      const page = await this.#store.processes
        .changes(own, from, {
          ...options,
          limit: limit - changes.length,
          ...(end !== undefined && { until: end }),
        })
        .catch((error: unknown) => {
          throw ofWhole(error, [
            [from, after],
            [end, until],
          ])
        })
      for (const change of page.changes) {
        at[part] = change.position
        length += change.state?.length ?? 0
        changes.push({ ...change, position: joined(at) })
      }
      at[part] = page.position
      if (!page.isEnd) return { changes, position: joined(at), isEnd: false }
    }
    return { changes, position: joined(at), isEnd: true }
  }

  async #rangeOfParts(name: string, options: RangeOptions): Promise<RangePage> {
    const { limit, since, maxLength = MAX_PAGE_LENGTH } = options
    const from = since === undefined ? undefined : await this.#parsed(since)
    const pages = await Promise.all(
      partsOf(name).map((own, part) =>
        this.#store.processes.range(own, { ...options, since: from?.[part] }).catch((error: unknown) => {
          throw ofWhole(error, [[from?.[part], since]])
        }),
      ),
    )
    const states: RangePage['states'][number][] = []
    let length = 0
    let isEnd = true
    const all = pages.flatMap((page) =>
      page.states.map((state, at) => ({ state, isLast: !page.isEnd && at === page.states.length - 1 })),
    )
    for (const { state, isLast } of all.toSorted((a, b) => compareKeys(a.state.key, b.state.key))) {
      if (states.length >= limit || length >= maxLength) isEnd = false
      if (!isEnd) break
      states.push(state)
      length += state.state.length
      // Further states of the same part may follow, before those of other parts.
      if (isLast) isEnd = false
    }
    return { states, position: joined(pages.map(({ position }) => position)), isEnd }
  }

  /** The positions of the parts. */
  async #parsed(position: Position): Promise<readonly Position[]> {
    const start = await this.#store.processes.start()
    const positions = String(position).split(SEPARATOR)
    if (positions.length === PROCESS_PARTS) return positions
    if (position === start) return Array.from({ length: PROCESS_PARTS }, () => start)
    throw new LogPositionError(
      'the log',
      String(position),
      'rebuilt',
      'is of before the process was divided, or none: take a new snapshot from',
    )
  }
}

function partsOf(name: string): readonly string[] {
  return Array.from({ length: PROCESS_PARTS }, (_, part) => partName(name, part))
}

function joined(positions: readonly Position[]): Position {
  return positions.join(SEPARATOR)
}

/** Replaces the refused position of a part by the position of the whole, which a reader can compare with its own. */
function ofWhole(
  error: unknown,
  positions: readonly (readonly [part: Position | undefined, whole: Position | undefined])[],
): unknown {
  if (!(error instanceof LogPositionError)) return error
  const [, whole] = positions.find(([part]) => part === error.position) ?? []
  return whole === undefined ? error : error.of(whole)
}

function compareKeys(a: string, b: string): number {
  return compareStored(storedText(a), storedText(b))
}
