import { describe, expect, it, onTestFinished } from 'vitest'
import { openDatabase } from '../../../src/service/database.ts'
import { Interactions } from '../../../src/service/interactions/interactions.ts'

function opened(): Interactions {
  const database = openDatabase(':memory:')
  onTestFinished(() => database.close())
  return new Interactions(database)
}

/** A chain of turns, whose last id is that of the last text. */
function chain(texts: readonly string[]): Interactions {
  const interactions = opened()
  for (const [index, question] of texts.entries()) {
    const previous = index === 0 ? undefined : `intr_${index - 1}`
    interactions.add({ id: `intr_${index}`, previous, question, answer: `answer ${index}` })
  }
  return interactions
}

describe('the turns of an interaction', () => {
  it('are its own and those before it, oldest first', () => {
    const interactions = chain(['a', 'b', 'c'])
    expect(interactions.turns('intr_1')).toEqual([
      { question: 'a', answer: 'answer 0' },
      { question: 'b', answer: 'answer 1' },
    ])
  })

  it('are undefined for an unknown id', () => {
    expect(chain(['a']).turns('intr_9')).toBeUndefined()
  })

  it('of a follow-up whose earlier turn is unknown are its own', () => {
    const interactions = opened()
    interactions.add({ id: 'intr_2', previous: 'intr_gone', question: 'q', answer: 'a' })
    expect(interactions.turns('intr_2')).toEqual([{ question: 'q', answer: 'a' }])
  })

  it('are bounded in number: the latest ones stay', () => {
    const turns = chain(Array.from({ length: 40 }, (_, index) => `question ${index}`)).turns('intr_39') ?? []
    expect(turns).toHaveLength(16)
    expect(turns.at(-1)?.question).toBe('question 39')
  })

  it('are bounded in length, each and together', () => {
    const turns = chain(Array.from({ length: 10 }, () => 'x'.repeat(100_000))).turns('intr_9') ?? []
    expect(turns).toHaveLength(3)
    expect(turns.at(-1)?.question).toHaveLength(8_000)
  })

  it('end where an interaction continues itself', () => {
    const interactions = opened()
    interactions.add({ id: 'intr_1', previous: 'intr_1', question: 'q', answer: 'a' })
    expect(interactions.turns('intr_1')).toHaveLength(16)
  })

  it('do not change when an id is added again', () => {
    const interactions = chain(['a'])
    interactions.add({ id: 'intr_0', question: 'other', answer: 'other' })
    expect(interactions.turns('intr_0')).toEqual([{ question: 'a', answer: 'answer 0' }])
  })
})
