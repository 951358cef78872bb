import { Observable } from 'rxjs'
import { Gate, gateOf, subscribeUnderGate } from '../../protocol/gate.ts'
import { MAX_CHECKS } from './answer-schema.ts'

/**
 * Checks each value and keeps their order, since a position follows the last emitted event: while a check is pending, all
 * later values wait. Pauses the source while `MAX_CHECKS` values wait.
 *
 * The check must not reject. An error or completion of the source follows the waiting values. Unsubscribing drops them.
 */
export function checkedInOrder<T, Checked>(
  source: Observable<T>,
  check: (value: T) => Checked | Promise<Checked>,
): Observable<Checked> {
  return new Observable((subscriber) => {
    const downstream = gateOf(subscriber)
    const gate = new Gate()
    let waiting = 0
    let last: Promise<void> = Promise.resolve()

    const updateGate = () => {
      if (downstream?.closed === true || waiting >= MAX_CHECKS) gate.close()
      else gate.open()
    }
    const afterWaiting = (step: () => void) => {
      if (waiting === 0) step()
      else void last.then(step)
    }
    subscriber.add(downstream?.onChange(updateGate))
    updateGate()
    subscriber.add(
      subscribeUnderGate(gate, downstream, source, {
        next(value) {
          const checked = check(value)
          if (waiting === 0 && !(checked instanceof Promise)) return subscriber.next(checked)
          waiting += 1
          updateGate()
          // A rejection would stop the values after it: a check never rejects.
          const previous = last
          last = (async () => {
            await previous
            const result = await checked
            waiting -= 1
            subscriber.next(result)
            updateGate()
          })()
        },
        error: (error: unknown) => afterWaiting(() => subscriber.error(error)),
        complete: () => afterWaiting(() => subscriber.complete()),
      }),
    )
  })
}
