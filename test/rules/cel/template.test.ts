import { describe, expect, it } from 'vitest'
import { compileTemplate, ExpressionError, type TemplateScope } from '../../../src/rules/cel/index.ts'
import { found } from './event.ts'

const alert = { key: { company: 'Acme' }, labels: { severity: 'page' }, value: 3 }
const annotation: TemplateScope = { of: 'annotation', keys: ['company'], labels: ['severity'] }

function render(text: string): string {
  const template = compileTemplate(text, annotation)
  return template.render(template.fromEvent(found()), alert)
}

function problems(text: string, scope: TemplateScope = annotation): readonly (readonly [string, string])[] {
  try {
    compileTemplate(text, scope)
    return []
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error
    return error.problems.map(({ message, offset, length }) => [text.slice(offset, offset + length), message])
  }
}

describe('a template', () => {
  it.each([
    ['plain', 'plain'],
    [
      '${key.company}: ${hosts(data.output)} hosts, ${value} of ${labels.severity}',
      'Acme: 2 hosts, 3 of page',
    ],
    ['$${key.company} costs $5', '${key.company} costs $5'],
    ['${"}" + key.company + \'{\'}', '}Acme{'],
    ['${{"a": {"b": key.company}}}', '{"a":{"b":"Acme"}}'],
    ['${[1].map(x, x + 1)}', '[2]'],
    ['<${data.output.content.other}>', '<>'],
    ['<${data.output.content.nothing}>', '<>'],
    ['${data.output.content.list} ${data.output.content.ratio}', '[1,2,3] 0.5'],
    ["${r'\\'}x", '\\x'],
  ])('becomes a text: %s', (text, rendered) => {
    expect(render(text)).toBe(rendered)
  })

  it('leaves the parts of an event empty where there was none', () => {
    expect(compileTemplate('${key.company} ${source}.', annotation).render([], alert)).toBe('Acme .')
  })

  it.each([
    ['a ${source', '${', 'not closed'],
    ['a ${sourc}', 'sourc', 'did you mean `source`?'],
    ['a ${}', '', 'Write an expression'],
    ['a ${key.compny}', 'compny', 'did you mean `company`?'],
    ['a ${key.company + source}', 'source', 'cannot be used together'],
    ['a ${text() + key.company}', 'text', 'reads the event'],
    ['a ${changed(source)}', 'changed', 'in conditions only'],
  ])('is refused, and the place is that in the whole text: %s', (text, part, message) => {
    expect(problems(text)).toEqual([[part, expect.stringContaining(message)]])
  })

  it('of a label has values of the key only', () => {
    expect(problems('${key.company}', { of: 'label', keys: ['company'] })).toEqual([])
    expect(problems('${value}', { of: 'label', keys: ['company'] })).toHaveLength(1)
    expect(problems('${source}', { of: 'label', keys: ['company'] })).toHaveLength(1)
    expect(problems('${hosts()}', { of: 'label', keys: ['company'] })).toHaveLength(1)
  })
})
