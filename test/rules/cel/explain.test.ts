import { describe, expect, it } from 'vitest'
import { compileExpression, explain, Problem } from '../../../src/rules/cel/index.ts'
import { found } from './event.ts'

describe('explain', () => {
  it('gives each part of a condition with its value, or why it has none', () => {
    const expression = compileExpression(
      "data.output.content.other > 1 || hosts(data.output) >= 2 && data.output.content.company == 'Beta'",
    )
    const { output } = JSON.parse(JSON.stringify(compileExpression('data').evaluate(found())))
    const problem = new Problem('missing', 'data.output.content.other')
    expect(explain(expression, found())).toEqual({
      text: expression.text.replaceAll("'", '"'),
      value: problem,
      parts: [
        {
          text: 'data.output.content.other > 1',
          value: problem,
          parts: [{ text: 'data.output.content.other', value: problem, parts: [] }],
        },
        {
          text: 'hosts(data.output) >= 2 && data.output.content.company == "Beta"',
          value: false,
          parts: [
            {
              text: 'hosts(data.output) >= 2',
              value: true,
              parts: [
                {
                  text: 'hosts(data.output)',
                  value: 2,
                  parts: [{ text: 'data.output', value: output, parts: [] }],
                },
              ],
            },
            {
              text: 'data.output.content.company == "Beta"',
              value: false,
              parts: [{ text: 'data.output.content.company', value: 'Acme', parts: [] }],
            },
          ],
        },
      ],
    })
  })

  it('gives each changed() the value that it has', () => {
    const expression = compileExpression('changed(id) && (changed(source) || !changed(via))', {
      allowChanged: true,
    })
    const { parts } = explain(expression, found(), [true, false, true])
    const flat = [parts, parts[1]?.parts ?? [], parts[1]?.parts[1]?.parts ?? []].flat()
    expect(
      flat.filter(({ text }) => text.startsWith('changed')).map(({ text, value }) => [text, value]),
    ).toEqual(
      expect.arrayContaining([
        ['changed(id)', true],
        ['changed(source)', false],
        ['changed(via)', true],
      ]),
    )
  })

  it('gives a macro with what it goes through', () => {
    const { value, parts } = explain(compileExpression('data.output.content.list.exists(x, x > 2)'), found())
    expect(value).toBe(true)
    expect(parts).toEqual([{ text: 'data.output.content.list', value: [1, 2, 3], parts: [] }])
  })
})
