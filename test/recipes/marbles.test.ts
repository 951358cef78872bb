import { runEvent } from 'rivulet'
import type { ResearchEvent } from 'rivulet'
import { dedupe, ofType } from 'rivulet/operators'
import { bufferTime, filter } from 'rxjs'
import type { Observable } from 'rxjs'
import { TestScheduler } from 'rxjs/testing'
import { expect, it } from 'vitest'

/** The pipeline under test: the runs that ended within 5 ms, at most 100, each once. */
const ended = (events: Observable<ResearchEvent>) =>
  events.pipe(
    ofType('task_run.state'),
    dedupe(),
    bufferTime(5, null, 100),
    filter((runs) => runs.length > 0),
  )

it('emits each run once, every 5 ms', () => {
  const scheduler = new TestScheduler((actual, expected) => expect(actual).toEqual(expected))
  const time = '2026-01-01T00:00:00Z'
  const run = (run_id: string) =>
    runEvent(
      {
        run: {
          run_id,
          status: 'completed',
          is_active: false,
          processor: 'base',
          metadata: {},
          created_at: time,
          modified_at: time,
        },
      },
      'stream',
    )
  const [a, b] = [run('trun_a'), run('trun_b')]

  scheduler.run(({ cold, expectObservable }) => {
    const events = cold('-a-a--b---|', { a, b })
    expectObservable(ended(events)).toBe('-----x----(y|)', { x: [a], y: [b] })
  })
})
