import { expect, it } from 'vitest'
import { surroundingsOf } from '../../../../src/service/processor/passages/surroundings.ts'
import { readUnits } from '../../../../src/service/processor/passages/units.ts'

const LONG =
  'It waits for as long as the gauge needs, which depends on the tide and on the weather of the day. '

it('a later sentence of a list item has its first one as its opening', () => {
  const text = `- \`tideLimit\`: the highest tide that is read. ${LONG.repeat(4)}Set it to \`false\` to read all tides.\n`
  const units = readUnits(text, []).units.map((unit) => ({
    unit,
    stems: new Set<string>(),
    headingStems: new Set<string>(),
  }))
  const index = units.findIndex(({ unit }) => unit.text.includes('`false`'))
  expect(index).toBeGreaterThan(0)
  expect(surroundingsOf(units, 0).opening).toBeUndefined()
  expect(surroundingsOf(units, 1).opening).toBe('`tideLimit`: the highest tide that is read.')
})
