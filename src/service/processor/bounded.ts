import { createContext, Script } from 'node:vm'

const script = new Script('work()')

/**
 * Runs synchronous work, and throws when it takes longer than this, in ms of real time. It ends loops, recursion and
 * regular expressions that backtrack without end.
 */
export function bounded<T>(ms: number, work: () => T): T {
  let result: { readonly value: T } | undefined
  const context = createContext({
    work: () => {
      result = { value: work() }
    },
  })
  script.runInContext(context, { timeout: ms })
  if (result === undefined) throw new Error('the work has not ended')
  return result.value
}
