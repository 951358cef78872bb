import { filter } from 'rxjs'
import type { OperatorFunction } from 'rxjs'
import { drop } from '../src/protocol/acknowledgement.ts'
import { checkList, checkText } from '../src/protocol/check.ts'

/** A value with a discriminant `type`. */
export interface Typed {
  readonly type: string
}

/** The members of the union `T` that have one of these types. */
export type OfType<T extends Typed, Type extends string> = T extends { readonly type: Type }
  ? T
  : // A member whose `type` is only known as `string` may match.
    string extends T['type']
    ? T & { readonly type: Type }
    : never

/**
 * Emits only the events of the given types, and narrows the union to them.
 *
 *     source:   --a--b--c--a--|
 *               ofType('a', 'c')
 *     result:   --a-----c--a--|
 *
 * ```ts
 * import { from } from 'rxjs'
 * import type { ResearchEvent } from 'rivulet'
 * import { ofType } from 'rivulet/operators'
 *
 * const events: ResearchEvent[] = []
 *
 * from(events)
 *   .pipe(ofType('monitor.event_stream'))
 *   .subscribe((event) => console.log(event.data.output.content))
 * ```
 *
 * Entries of a log's consumer that it drops are acknowledged. Errors pass through, and unsubscribing unsubscribes from the source.
 *
 * @throws ArgumentError at the call, when no type is given or a type is empty.
 */
export function ofType<T extends Typed, const Type extends T['type']>(
  ...types: readonly [Type, ...Type[]]
): OperatorFunction<T, OfType<T, Type>> {
  checkList('types', types)
  for (const type of types) checkText('types', type)
  const wanted: ReadonlySet<string> = new Set(types)

  return filter((event: T): event is OfType<T, Type> & T => {
    if (wanted.has(event.type)) return true
    drop(event)
    return false
  })
}
