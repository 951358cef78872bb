/** Keeps state and timers by key, and appends what the timers find. */
import { isCounted } from '../facts.ts'
import { runRole } from './role.ts'

/** How long a key is silent until its timer fires, in ms between recordings. */
const SILENCE = 250

/** How much later by event time another timer fires, in ms. */
const WINDOW = 2_000

interface Board {
  readonly count: number
  /** Unix ms. */
  readonly last: number
}

await runRole((log) => {
  const job = log.process<Board>('board', {
    version: 1,
    where: ({ type }) => isCounted(type),
    // Some dozens of keys, with many entries each.
    key: ({ id }) => id.slice(-2),
    init: () => ({ count: 0, last: 0 }),
    event(state, { recorded, time }, context) {
      context.set({ count: state.count + 1, last: recorded })
      context.timer('silence', recorded + SILENCE)
      const at = Date.parse(time ?? '')
      if (!Number.isNaN(at)) context.timer('window', at + WINDOW, { clock: 'event' })
    },
    timer(state, due, context, name) {
      context.set({ ...state, count: state.count + 1_000_000 })
      context.append({ type: 'unknown', data: { key: context.key, name, due, count: state.count } })
    },
  })
  return { failed: job.done, stop: () => job.stop() }
})
