import { merge, Observable } from 'rxjs'
import { currentGate, Gate, throughGate } from 'rivulet/operators'
import { describe, expect, it } from 'vitest'

const fail = () => {
  throw new Error('no')
}

describe('Gate', () => {
  it('tells its listeners of changes only, until they leave', () => {
    const gate = new Gate()
    const heard: boolean[] = []
    const leave = gate.onChange((closed) => heard.push(closed))
    gate.open()
    gate.close()
    gate.close()
    gate.open()
    leave()
    gate.close()
    expect(heard).toEqual([true, false])
    expect(gate.closed).toBe(true)
  })

  it('reaches every source that is subscribed within, through operators that know nothing of it', () => {
    const gate = new Gate()
    const seen: (Gate | undefined)[] = []
    const source = new Observable<never>(() => {
      seen.push(currentGate())
    })
    throughGate(gate, () => merge(source, source).subscribe()).unsubscribe()
    expect(seen).toEqual([gate, gate])
    expect(currentGate()).toBeUndefined()
  })

  it('is the outer one again after an inner subscription, even one that throws', () => {
    const [outer, inner] = [new Gate(), new Gate()]
    throughGate(outer, () => {
      expect(() => throughGate(inner, fail)).toThrow('no')
      expect(currentGate()).toBe(outer)
    })
  })
})
