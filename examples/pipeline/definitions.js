// What the service computes. Nothing here knows a log, so tests and backtests run it too.
import { aggregate, count, define, from, join, keyBy, map, tumbling, where } from 'rivulet/streams'

const runs = from('task_run.state')

/** The number of runs of each processor and second. */
export const usage = define(
  'usage',
  { version: 1 },
  runs.pipe(
    keyBy(({ data }) => data.run.processor),
    aggregate('seconds', tumbling('1s'), { runs: count() }),
  ),
)

const answersOf = (/** @type {string} */ processor) =>
  runs.pipe(
    where(({ data }) => data.run.processor === processor),
    map(({ data }) => ({ question: String(data.run.metadata?.question), answer: data.output?.content })),
    keyBy(({ question }) => question),
  )
const pair = join('opinions', answersOf('base'), { within: '1m', kind: 'left' })

/** The answer of the small processor to each question, with that of the large one. */
export const opinions = define('opinions', { version: 1 }, answersOf('lite').pipe(pair))
