// placeholder
export default () => null;
