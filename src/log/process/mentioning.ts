import { LogPositionError } from '../errors.ts'
import { wholeName } from '../consume/part-name.ts'
import type { LogStore } from '../store/contract.ts'
import type { Timer, TimerClock } from '../../streams/timers.ts'

/** How many states and timers are read at once. */
const PAGE = 1_000

const KIND = 'process:'

const CLOCKS: readonly TimerClock[] = ['event', 'recorded']

/**
 * Finds the processes that mention a source or the id in it: as a key or anywhere in a state, also keys that were removed, since views of a
 * gateway have rows by id; and as the key, the name or the cause of a timer, or anywhere in its data. A short id may be mentioned by chance.
 *
 * @returns Their names, in order.
 */
export async function processesMentioning(store: LogStore, source: string): Promise<readonly string[]> {
  const { readers } = await store.retention.stats()
  const id = source.slice(source.lastIndexOf('/') + 1)
  const texts = [...new Set([source, id])].filter((text) => text !== '')
  const forms = new Set([...texts, ...texts.map((text) => JSON.stringify(text).slice(1, -1))])
  const found = new Set<string>()
  const mentions = (text: string | null) => text !== null && [...forms].some((form) => text.includes(form))
  for (const { name } of readers) {
    const process = wholeName(name)
    if (!process.startsWith(KIND) || found.has(process)) continue
    const isMentioned = (await isInStates(store, name, mentions)) || (await isInTimers(store, name, mentions))
    if (isMentioned) found.add(process)
  }
  return [...found].map((process) => process.slice(KIND.length)).toSorted()
}

type Mentions = (text: string | null) => boolean

async function isInStates(store: LogStore, name: string, mentions: Mentions): Promise<boolean> {
  let after = await store.processes.start()
  try {
    for (;;) {
      const page = await store.processes.changes(name, after, { limit: PAGE })
      if (page.changes.some(({ key, state }) => mentions(key) || mentions(state))) return true
      if (page.isEnd) return false
      after = page.position
    }
  } catch (error) {
    // Its state was built again meanwhile, with or without the deleted entries.
    if (error instanceof LogPositionError) return true
    throw error
  }
}

async function isInTimers(store: LogStore, name: string, mentions: Mentions): Promise<boolean> {
  for (const clock of CLOCKS) {
    let after: Timer | undefined
    do {
      const timers = await store.processes.timers(name, {
        clock,
        until: Number.MAX_VALUE,
        after,
        limit: PAGE,
      })
      if (timers.some(({ key, name: own, cause, data }) => [key, own, cause, data].some(mentions)))
        return true
      after = timers.length < PAGE ? undefined : timers.at(-1)
    } while (after !== undefined)
  }
  return false
}
