export { isId, newId } from './ids.ts'
export { isUnitPrice, MAX_UNIT_PRICE } from './money.ts'
export {
  cancelled,
  type Order,
  type OrderItem,
  type OrderRequest,
  orderEtag,
  orderRequestSchema,
  priceOrder,
  type View,
  viewOrderJson,
} from './order.ts'
