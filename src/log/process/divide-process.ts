import type { Fence, LogStore, Position } from '../store/contract.ts'
import { isDivided, partName } from '../consume/part-name.ts'
import { MAX_EFFECT_BYTES, stateBytes, timerBytes } from '../../streams/sizes.ts'
import type { Timer, TimerClock } from '../../streams/timers.ts'
import type { StateChange } from '../store/process-store.ts'
import { begin } from './begin.ts'
import type { ProcessSettings } from './process.ts'
import { partOfKey, PROCESS_PARTS } from './process-parts.ts'
import { checkpointOf } from './progress.ts'

/** States or timers that are read at once. */
const PAGE = 500

const CLOCKS: readonly TimerClock[] = ['event', 'recorded']

/** The settings that decide how a process begins. */
type DivideSettings = Parameters<typeof begin>[1] & Pick<ProcessSettings<unknown, never>, 'holdsRetention'>

/**
 * Creates a process for each part of the keys of one process, with its states and timers, at its cursor; or at the start of a new
 * process. The order is that of a consumer (`consume/dividing.ts`): no process of a part begins while the one process exists, and the
 * one process does not begin again once the first process of a part exists.
 *
 * @param wait Ends the waiting for a process that is not shared.
 */
export async function divideProcess(
  store: LogStore,
  name: string,
  settings: DivideSettings,
  wait: AbortSignal,
): Promise<void> {
  const whole = `process:${name}`
  if (await isDivided(store, whole)) return
  const fence = await store.claim(whole, { wait })
  const fences: Fence[] = []
  try {
    if (await isDivided(store, whole)) return
    const { cursor, progress } = await begin({ store, fence, name, signal: wait }, settings)
    for (let number = 0; number < PROCESS_PARTS; number++) {
      fences.push(await store.claim(partName(whole, number), { wait }))
    }
    // Refused if another open log has divided the process while this one was suspended: its parts may have run since.
    await store.commit(fence, {
      expect: cursor,
      cursor,
      acknowledged: [],
      process: {
        checkpoint: checkpointOf(progress),
        holdsRetention: settings.holdsRetention,
        state: [],
        timers: [],
      },
    })
    const parts: NewPartition[] = []
    for (const own of fences) {
      const part = new NewPartition(store, own, cursor, checkpointOf(progress), settings.holdsRetention)
      // Drops the rest of an earlier attempt.
      await part.begin()
      parts.push(part)
    }
    for await (const state of statesOf(store, whole)) await parts[partOfKey(state.key)]?.addState(state)
    for await (const timer of timersOf(store, whole)) await parts[partOfKey(timer.key)]?.addTimer(timer)
    for (const part of parts) await part.save()
    wait.throwIfAborted()
    await store.retention.remove(whole, fence)
  } finally {
    for (const each of [...fences, fence]) await store.release(each).catch(() => {})
  }
}

/** A part that is being created. */
class NewPartition {
  readonly #store: LogStore
  readonly #fence: Fence
  readonly #cursor: Position
  readonly #checkpoint: string
  readonly #holdsRetention: boolean
  #state: StateChange[] = []
  #timers: Timer[] = []
  #bytes = 0

  constructor(store: LogStore, fence: Fence, cursor: Position, checkpoint: string, holdsRetention: boolean) {
    this.#store = store
    this.#fence = fence
    this.#cursor = cursor
    this.#checkpoint = checkpoint
    this.#holdsRetention = holdsRetention
  }

  async begin(): Promise<void> {
    const known = await this.#store.reader(this.#fence.name)
    await this.#commit(known?.cursor ?? null, true)
  }

  async addState(state: StateChange): Promise<void> {
    await this.#makeRoom(stateBytes(state))
    this.#state.push(state)
  }

  async addTimer(timer: Timer): Promise<void> {
    await this.#makeRoom(timerBytes(timer))
    this.#timers.push(timer)
  }

  async save(): Promise<void> {
    if (this.#state.length + this.#timers.length > 0) await this.#commit(this.#cursor)
  }

  async #makeRoom(bytes: number): Promise<void> {
    if (this.#bytes + bytes > MAX_EFFECT_BYTES) await this.save()
    this.#bytes += bytes
  }

  async #commit(expect: Position | null, reset = false): Promise<void> {
    await this.#store.commit(this.#fence, {
      expect,
      cursor: this.#cursor,
      acknowledged: [],
      process: {
        checkpoint: this.#checkpoint,
        reset,
        holdsRetention: this.#holdsRetention,
        state: this.#state,
        timers: this.#timers,
      },
    })
    this.#state = []
    this.#timers = []
    this.#bytes = 0
  }
}

async function* statesOf({ processes }: LogStore, name: string): AsyncGenerator<StateChange, void> {
  let position = await processes.start()
  for (let isEnd = false; !isEnd;) {
    const page = await processes.changes(name, position, { limit: PAGE, present: true })
    yield* page.changes.filter(({ state }) => state !== null)
    position = page.position
    isEnd = page.isEnd
  }
}

async function* timersOf({ processes }: LogStore, name: string): AsyncGenerator<Timer, void> {
  for (const clock of CLOCKS) {
    let after: Timer | undefined
    for (;;) {
      const page: readonly Timer[] = await processes.timers(name, {
        clock,
        until: Number.MAX_VALUE,
        after,
        limit: PAGE,
      })
      yield* page
      after = page.at(-1)
      if (page.length < PAGE) break
    }
  }
}
