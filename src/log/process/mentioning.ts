import { LogPositionError } from '../errors.ts'
import { wholeName } from '../part-name.ts'
import type { LogStore } from '../store/contract.ts'

/** How many states are read at once. */
const PAGE = 1_000

const KIND = 'process:'

/**
 * Finds the processes whose states mention a source or the id in it, as a key or anywhere in a state, also keys that were removed: views of a
 * gateway have rows by id. A short id may be mentioned by chance.
 *
 * @returns Their names, in order.
 */
export async function processesMentioning(store: LogStore, source: string): Promise<readonly string[]> {
  const { readers } = await store.retention.stats()
  const id = source.slice(source.lastIndexOf('/') + 1)
  const texts = [...new Set([source, id])].filter((text) => text !== '')
  const forms = new Set([...texts, ...texts.map((text) => JSON.stringify(text).slice(1, -1))])
  const found = new Set<string>()
  for (const { name } of readers) {
    const process = wholeName(name)
    if (!process.startsWith(KIND) || found.has(process)) continue
    if (await isMentioned(store, name, [...forms])) found.add(process)
  }
  return [...found].map((process) => process.slice(KIND.length)).toSorted()
}

async function isMentioned(store: LogStore, name: string, forms: readonly string[]): Promise<boolean> {
  let after = await store.processes.start()
  try {
    for (;;) {
      const page = await store.processes.changes(name, after, { limit: PAGE })
      const mentions = (text: string | null) => text !== null && forms.some((form) => text.includes(form))
      if (page.changes.some(({ key, state }) => mentions(key) || mentions(state))) return true
      if (page.isEnd) return false
      after = page.position
    }
  } catch (error) {
    // Its state was built again meanwhile, from what is left or from what was there before.
    if (error instanceof LogPositionError) return true
    throw error
  }
}
