//! The five tables, with indexes where the specification has foreign keys.

use crate::tpch::TableDefinition;

/// Ordered by references: a table follows the tables that it refers to.
pub const TABLES: [TableDefinition; 5] = [
    TableDefinition {
        name: "dates",
        columns: "d_datekey INT NOT NULL PRIMARY KEY, d_date CHAR(10) NOT NULL, d_dayofweek VARCHAR(9) NOT NULL, \
                  d_month VARCHAR(9) NOT NULL, d_year INT NOT NULL, d_yearmonthnum INT NOT NULL, \
                  d_yearmonth CHAR(7) NOT NULL, d_daynuminweek INT NOT NULL, d_daynuminmonth INT NOT NULL, \
                  d_daynuminyear INT NOT NULL, d_monthnuminyear INT NOT NULL, d_weeknuminyear INT NOT NULL, \
                  d_sellingseason VARCHAR(12) NOT NULL, d_lastdayinmonthfl BIT(1) NOT NULL, \
                  d_weekdayfl BIT(1) NOT NULL",
        indexes: &["d_years(d_year)"],
    },
    TableDefinition {
        name: "supplier",
        columns: "s_suppkey INT NOT NULL PRIMARY KEY, s_name CHAR(25) NOT NULL, s_address VARCHAR(25) NOT NULL, \
                  s_city CHAR(10) NOT NULL, s_nation CHAR(15) NOT NULL, s_region CHAR(12) NOT NULL, \
                  s_phone CHAR(15) NOT NULL",
        indexes: &[],
    },
    TableDefinition {
        name: "customer",
        columns: "c_custkey INT NOT NULL PRIMARY KEY, c_name VARCHAR(25) NOT NULL, c_address VARCHAR(25) NOT NULL, \
                  c_city CHAR(10) NOT NULL, c_nation CHAR(15) NOT NULL, c_region CHAR(12) NOT NULL, \
                  c_phone CHAR(15) NOT NULL, c_mktsegment CHAR(10) NOT NULL",
        indexes: &[],
    },
    TableDefinition {
        name: "part",
        columns: "p_partkey INT NOT NULL PRIMARY KEY, p_name VARCHAR(22) NOT NULL, p_mfgr CHAR(6) NOT NULL, \
                  p_category CHAR(7) NOT NULL, p_brand1 CHAR(9) NOT NULL, p_color VARCHAR(11) NOT NULL, \
                  p_type VARCHAR(25) NOT NULL, p_size INT NOT NULL, p_container CHAR(10) NOT NULL",
        indexes: &["p_brands(p_brand1)"],
    },
    TableDefinition {
        name: "lineorder",
        columns: "lo_orderkey BIGINT NOT NULL, lo_linenumber INT NOT NULL, lo_custkey INT NOT NULL, \
                  lo_partkey INT NOT NULL, lo_suppkey INT NOT NULL, lo_orderdate INT NOT NULL, \
                  lo_orderpriority CHAR(15) NOT NULL, lo_shippriority CHAR(1) NOT NULL, lo_quantity INT NOT NULL, \
                  lo_extendedprice INT NOT NULL, lo_ordtotalprice INT NOT NULL, lo_discount INT NOT NULL, \
                  lo_revenue INT NOT NULL, lo_supplycost INT NOT NULL, lo_tax INT NOT NULL, \
                  lo_commitdate INT NOT NULL, lo_shipmode CHAR(10) NOT NULL, PRIMARY KEY (lo_orderkey, lo_linenumber)",
        indexes: &[
            "lo_customer(lo_custkey)",
            "lo_part(lo_partkey)",
            "lo_supplier(lo_suppkey)",
            "lo_ordered(lo_orderdate)",
        ],
    },
];
