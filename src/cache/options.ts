import { group, wholeNumber } from '../runtime/index.ts'

export const cacheOptions = group({
  l1Seconds: wholeNumber({
    is: 'How long a price may be used again before pricing is asked anew.',
    unit: 's',
    default: 20,
    min: 1,
    max: 3_600,
    trade: 'Higher asks pricing less often; a changed price takes as long to be seen.',
  }),
  maxBytes: wholeNumber({
    is: 'Memory that cached entries may take, by estimate; the least recently used leave first.',
    unit: 'bytes',
    default: 16_777_216,
    min: 65_536,
    max: 4_294_967_296,
    trade: 'Higher keeps more entries.',
  }),
})
